#pragma once

#include "base/result.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth {

namespace asio = boost::asio;

// A coroutine that ends in a value or an Error. It starts when it is awaited.
template <class T = void>
using Task = asio::awaitable<Result<T>>;

// Passed to an Asio operation, so that it returns its error code beside its values instead of
// throwing.
inline constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

}  // namespace berth
