#include "store/sql/shown_error.hpp"

#include "base/log.hpp"

namespace berth::store {
namespace {

// The reasons of libpq name the host and the user too, so only the kind of the failure is shown.
std::string_view sentence_of(Errc code) {
  switch (code) {
    case Errc::store_unreachable: return "the database does not respond";
    case Errc::store_full: return "the disk of the database is full";
    case Errc::store_read_only: return "the database cannot be written to";
    case Errc::store_locked: return "the database is locked by another program";
    case Errc::store_corrupt: return "the database is damaged";
    case Errc::timed_out: return "the database took too long";
    case Errc::overloaded: return "too many transactions change the same rows";
    default: return "the database failed";
  }
}

}  // namespace

Error shown_error(Error error, std::string_view name) {
  if (!error.message.contains(name)) return error;
  log::warn("store.failed", {{"code", error.code}, {"error", error.message}});
  error.message = sentence_of(error.code);
  return error;
}

Result<> shown_result(Result<> result, std::string_view name) {
  if (result) return result;
  return std::unexpected(shown_error(std::move(result).error(), name));
}

}  // namespace berth::store
