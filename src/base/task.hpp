#pragma once

#include "base/result.hpp"

#include <boost/asio/awaitable.hpp>

namespace berth {

namespace asio = boost::asio;

// A coroutine that ends in a value or an Error. It starts when it is awaited.
template <class T = void>
using Task = asio::awaitable<Result<T>>;

}  // namespace berth
