#include "engine/leases/lease_files.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

#include <charconv>

// Bytes, not JSON, in and out of leased places.
namespace berth::http {
namespace {

using engine::LeaseFiles;

constexpr Bounds part_bytes{.usual = static_cast<std::int64_t>(LeaseFiles::bytes_max),
                            .least = 1,
                            .most = static_cast<std::int64_t>(LeaseFiles::bytes_max)};
constexpr mode_t usual_mode = 0644;
constexpr mode_t mode_max = 0777;
constexpr const char* tar_type = "application/x-tar";

struct PathQuery {
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(PathQuery, (), (path))

struct FileReadQuery {
  std::optional<std::string> path;
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> limit_bytes;
};
BOOST_DESCRIBE_STRUCT(FileReadQuery, (), (path, offset, limit_bytes))

struct FileWriteQuery {
  std::optional<std::string> path;
  std::optional<std::string> mode;  // octal
  std::optional<Time> mtime;
};
BOOST_DESCRIBE_STRUCT(FileWriteQuery, (), (path, mode, mtime))

Result<engine::FileRead> file_read_of(FileReadQuery query) {
  engine::FileRead read{.path = std::move(query.path).value_or("")};
  BERTH_TRY(const std::int64_t offset, bounded("offset", query.offset, any_offset));
  read.offset = static_cast<std::uint64_t>(offset);
  if (!query.limit_bytes) return read;
  BERTH_TRY(const std::int64_t most, bounded("limitBytes", query.limit_bytes, part_bytes));
  read.bytes_max = static_cast<std::uint64_t>(most);
  return read;
}

Result<engine::FileWrite> file_write_of(FileWriteQuery query) {
  engine::FileWrite write{
      .path = std::move(query.path).value_or(""), .mode = usual_mode, .mtime = query.mtime};
  if (!query.mode) return write;
  const char* const end = query.mode->data() + query.mode->size();
  const auto [stop, error] = std::from_chars(query.mode->data(), end, write.mode, 8);
  if (error == std::errc{} && stop == end && write.mode <= mode_max) return write;
  return std::unexpected(Error{Errc::validation_failed,
                               "query parameter 'mode' is not an octal number up to 0777",
                               "send permission bits such as 0644",
                               {{"/mode", "is not an octal number up to 0777"}}});
}

Task<Rendered<engine::FolderListing>> read(LeaseFiles& files, core::Call call, core::LeaseId id,
                                           FileReadQuery query) {
  BERTH_CO_TRY(engine::FileRead wanted, file_read_of(std::move(query)));
  BERTH_CO_TRY(auto found, co_await files.read(call, id, std::move(wanted)));
  if (const auto* folder = std::get_if<engine::FolderListing>(&found)) {
    co_return Rendered<engine::FolderListing>{json_response(200, *folder)};
  }
  auto& part = std::get<engine::FilePart>(found);
  Response bytes{.content_type = "application/octet-stream",
                 .body = std::move(part.bytes),
                 .headers = {{"X-Next-Offset", std::to_string(part.next_offset)},
                             {"X-Eof", part.eof ? "true" : "false"},
                             {"X-File-Mode", part.mode},
                             {"X-File-Mtime", to_iso8601(part.mtime)},
                             {"X-File-Bytes", std::to_string(part.file_bytes)}}};
  co_return Rendered<engine::FolderListing>{std::move(bytes)};
}

Task<Response> write(LeaseFiles& files, core::Call call, core::LeaseId id, FileWriteQuery query,
                     RawBody body) {
  BERTH_CO_TRY(engine::FileWrite wanted, file_write_of(std::move(query)));
  BERTH_CO_TRY(const LeaseFiles::Written written,
               co_await files.write(call, id, std::move(wanted), body.bytes));
  const bool is_new = written == LeaseFiles::Written::created;
  co_return Response{.status = is_new ? 201U : 204U, .content_type = {}};
}

Task<NoContent> remove(LeaseFiles& files, core::Call call, core::LeaseId id, std::string path) {
  BERTH_CO_DO(co_await files.remove(call, id, std::move(path)));
  co_return NoContent{};
}

Task<Response> archive(LeaseFiles& files, core::Call call, core::LeaseId id, std::string path) {
  BERTH_CO_TRY(std::string tar, co_await files.archive(call, id, std::move(path)));
  co_return Response{.content_type = tar_type, .body = std::move(tar)};
}

Task<NoContent> unpack(LeaseFiles& files, core::Call call, core::LeaseId id, std::string path,
                       RawBody body) {
  BERTH_CO_DO(co_await files.unpack(call, id, std::move(path), body.bytes));
  co_return NoContent{};
}

// The same route, described as one for archives.
Route of_tar(Route route) {
  route.describe = [describe = std::move(route.describe)](SchemaBook& book) {
    Shape shape = describe(book);
    if (shape.body) {
      shape.body_type = tar_type;
    } else {
      shape.answer_type = tar_type;
    }
    return shape;
  };
  return route;
}

std::vector<Route> file_routes(LeaseFiles& files) {
  using core::Permission;
  const std::string path = "/api/environment-leases/{lease}/files";
  return {
      Endpoint<LeasePath, FileReadQuery, None, Rendered<engine::FolderListing>>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "files",
          .says = "List a folder of a place that is held, or read a file of it: the bytes, with "
                  "X-Next-Offset, X-Eof, X-File-Mode, X-File-Mtime and X-File-Bytes; a file that "
                  "grows is read as far as it was at that moment",
          .others = {{.type = "application/octet-stream",
                      .headers = {"X-Next-Offset", "X-Eof", "X-File-Mode", "X-File-Mtime",
                                  "X-File-Bytes"}}},
          .call =
              [&files](core::Call call, auto in) {
                return read(files, std::move(call), in.path.lease, std::move(in.query));
              }},
      Endpoint<LeasePath, FileWriteQuery, RawBody, Response>{
          .verb = Verb::put,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "files",
          .says = "Write a file in a place that is held, whole or not at all: 201 when it is new, "
                  "204 when one was replaced. Its time is mtime, or now, as always in a plugin's "
                  "sandbox",
          .status = 201,
          .others = {{.status = 204}},
          .body_bytes_max = LeaseFiles::bytes_max,
          .call =
              [&files](core::Call call, auto in) {
                return write(files, std::move(call), in.path.lease, std::move(in.query), in.body);
              }},
      Endpoint<LeasePath, PathQuery, None, NoContent>{
          .verb = Verb::delete_,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "files",
          .says = "Remove a file, a link or a folder with all that is in it",
          .call =
              [&files](core::Call call, auto in) {
                return remove(files, std::move(call), in.path.lease,
                              std::move(in.query.path).value_or(""));
              }},
  };
}

std::vector<Route> archive_routes(LeaseFiles& files) {
  using core::Permission;
  const std::string path = "/api/environment-leases/{lease}/archive";
  return {
      of_tar(Endpoint<LeasePath, PathQuery, None, Response>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "files",
          .says = "What a folder of a place that is held has in it, as a tar",
          .call =
              [&files](core::Call call, auto in) {
                return archive(files, std::move(call), in.path.lease,
                               std::move(in.query.path).value_or(""));
              }}),
      of_tar(Endpoint<LeasePath, PathQuery, RawBody, NoContent>{
          .verb = Verb::put,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "files",
          .says = "Unpack a tar, plain or compressed with gzip or zstd, into a folder of a place "
                  "that is held: all of it or nothing",
          .body_bytes_max = LeaseFiles::bytes_max,
          .call =
              [&files](core::Call call, auto in) {
                return unpack(files, std::move(call), in.path.lease,
                              std::move(in.query.path).value_or(""), in.body);
              }}),
  };
}

}  // namespace

std::vector<Route> lease_file_routes(LeaseFiles& files) {
  std::vector<Route> all = file_routes(files);
  for (Route& route : archive_routes(files)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
