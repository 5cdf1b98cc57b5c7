#pragma once

#include "execution/execution.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace berth::execution {

struct CutRecords {
  std::vector<OutputPiece> pieces;  // of the bytes that were given, not copied
  std::size_t used = 0;             // the rest is the beginning of a record
};

// The whole records at the beginning of bytes of a keeper's output file, which stand at `offset`
// there. Bytes that are no record are an error: the offset is not that of a record, or the file is
// damaged.
Result<CutRecords> cut_records(std::string_view bytes, std::uint64_t offset);

}  // namespace berth::execution
