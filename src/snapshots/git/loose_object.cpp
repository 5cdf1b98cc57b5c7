#include "snapshots/git/loose_object.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <string>

namespace berth::snapshots {
namespace {

std::string deflated(const std::string& bytes) {
  uLongf size = ::compressBound(bytes.size());
  std::string out(size, '\0');
  BERTH_ASSERT(::compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 1) == Z_OK);
  out.resize(size);
  return out;
}

}  // namespace

Result<ObjectId> write_loose(const Repository& repository, ObjectType type,
                             std::string_view content) {
  const ObjectId id = id_of(type, content);
  const std::string name = id.hex();
  const std::string folder = repository.folder() + "/objects/" + name.substr(0, 2);
  BERTH_DO(make_directories(folder, 0700));
  SystemRandom random;
  const std::string draft = folder + "/tmp_obj_" + random_base64url(random, 9);
  const Fd file{::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400)};
  if (!file) return io_failure("create", draft, errno);
  const std::string path = folder + "/" + name.substr(2);
  Result<> done = write_at(
      file.get(), deflated(object_header(type, content.size()) + std::string{content}), 0, draft);
  if (done && ::rename(draft.c_str(), path.c_str()) != 0) done = io_failure("rename", draft, errno);
  if (done) return id;
  ::unlink(draft.c_str());
  return std::unexpected(std::move(done).error());
}

}  // namespace berth::snapshots
