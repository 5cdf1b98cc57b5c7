#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>

namespace berth::tests {

inline std::string gzipped(const std::string& bytes) {
  std::string out(bytes.size() + 4096, '\0');
  std::size_t used = 0;
  ::archive* writer = ::archive_write_new();
  ::archive_write_add_filter_gzip(writer);
  ::archive_write_set_format_raw(writer);
  ::archive_write_open_memory(writer, out.data(), out.size(), &used);
  ::archive_entry* entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ::archive_write_header(writer, entry);
  ::archive_write_data(writer, bytes.data(), bytes.size());
  ::archive_entry_free(entry);
  ::archive_write_free(writer);
  out.resize(used);
  return out;
}

}  // namespace berth::tests
