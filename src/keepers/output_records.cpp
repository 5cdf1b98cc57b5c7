#include "keepers/output_records.hpp"

#include "keeper/protocol/output.hpp"

namespace berth::keepers {
namespace {

OutputKind kind_of(keeper::Stream stream) {
  switch (stream) {
    case keeper::Stream::out: return OutputKind::out;
    case keeper::Stream::err: return OutputKind::err;
    default: return OutputKind::note;
  }
}

}  // namespace

Result<CutRecords> cut_records(std::string_view bytes, std::uint64_t offset) {
  CutRecords cut;
  while (bytes.size() - cut.used >= keeper::record_header_bytes) {
    const std::string_view head = bytes.substr(cut.used, keeper::record_header_bytes);
    const auto header = keeper::decode_header(head);
    // A power cut leaves zeros in place of a tail that never reached the disk.
    if (!header && head.find_first_not_of('\0') == std::string_view::npos) break;
    if (!header) {
      return fail(Errc::io_failed,
                  "output: no record starts at offset " + std::to_string(offset + cut.used),
                  "read from 0 or from the offset after a record");
    }
    const std::size_t whole = keeper::record_header_bytes + header->size;
    if (bytes.size() - cut.used < whole) break;
    cut.pieces.push_back(
        {.offset = offset + cut.used,
         .next_offset = offset + cut.used + whole,
         .kind = kind_of(header->stream),
         .at = Time{header->time_us / 1000},
         .bytes = bytes.substr(cut.used + keeper::record_header_bytes, header->size)});
    cut.used += whole;
  }
  return cut;
}

}  // namespace berth::keepers
