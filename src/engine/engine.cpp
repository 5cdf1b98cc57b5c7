#include "engine/engine.hpp"

#include "store/companies.hpp"

namespace berth::engine {

Task<> Engine::ready() {
  BERTH_CO_DO(co_await services.store.read(store::count_companies));
  co_return Result<>{};
}

}  // namespace berth::engine
