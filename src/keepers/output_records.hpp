#pragma once

#include "keepers/command.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace berth::keepers {

struct CutRecords {
  std::vector<OutputPiece> pieces;  // views into the given bytes
  std::size_t used = 0;             // the rest is the beginning of a record
};

// The complete records at the beginning of `bytes`, which were read at `offset` of a keeper's
// output file. Malformed bytes are an error: the offset is not the start of a record, or the file
// is damaged.
Result<CutRecords> cut_records(std::string_view bytes, std::uint64_t offset);

}  // namespace berth::keepers
