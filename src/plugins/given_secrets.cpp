#include "plugins/given_secrets.hpp"

#include "core/output/redaction.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace berth::plugins {

struct GivenSecrets::Hold::Value {
  Value(Secret its_secret, const Clock& its_clock)
      : secret(std::move(its_secret)), clock(its_clock), used_at(its_clock.steady()) {}

  // Each value has its own set, built when the first text needs it. Every run brings a new token,
  // and one set of all values would be rebuilt for each.
  const core::RedactionSet& patterns() {
    if (!set) set.emplace(std::span{&secret, 1});
    return *set;
  }

  Secret secret;
  std::optional<core::RedactionSet> set = {};
  const Clock& clock;
  std::size_t holders = 0;
  Clock::Steady used_at;
};

GivenSecrets::Hold& GivenSecrets::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  values_ = std::move(other.values_);
  other.values_.clear();
  return *this;
}

GivenSecrets::Hold::~Hold() {
  let_go();
}

void GivenSecrets::Hold::let_go() {
  for (const std::shared_ptr<Value>& value : values_) {
    --value->holders;
    value->used_at = value->clock.steady();
  }
  values_.clear();
}

GivenSecrets::GivenSecrets(const Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}

GivenSecrets::~GivenSecrets() = default;

GivenSecrets::Hold GivenSecrets::hold(std::span<const Secret> values) {
  Hold out;
  for (const Secret& value : values) {
    if (value.reveal().size() < core::redactable_bytes_min) continue;
    out.values_.push_back(find_or_add(value));
    ++out.values_.back()->holders;
  }
  forget();
  return out;
}

std::shared_ptr<GivenSecrets::Hold::Value> GivenSecrets::find_or_add(const Secret& value) {
  for (const std::shared_ptr<Hold::Value>& known : values_) {
    if (known->secret.reveal() == value.reveal()) return known;
  }
  const auto size_of = [](const auto& known) { return known->secret.reveal().size(); };
  const auto place =
      std::ranges::lower_bound(values_, value.reveal().size(), std::ranges::greater{}, size_of);
  return *values_.insert(place, std::make_shared<Hold::Value>(value.clone(), clock_));
}

void GivenSecrets::forget() {
  const Clock::Steady now = clock_.steady();
  std::erase_if(values_, [&](const auto& value) {
    return value->holders == 0 && now - value->used_at >= limits_.remembered_for;
  });
  std::vector<std::shared_ptr<Hold::Value>> idle;
  std::ranges::copy_if(values_, std::back_inserter(idle),
                       [](const auto& value) { return value->holders == 0; });
  std::ranges::sort(idle, std::ranges::greater{}, [](const auto& value) { return value->used_at; });
  std::size_t kept = 0;
  std::size_t bytes = 0;
  for (const std::shared_ptr<Hold::Value>& value : idle) {
    bytes += value->secret.reveal().size();
    if (++kept > limits_.remembered_max || bytes > limits_.remembered_bytes_max) {
      std::erase(values_, value);
    }
  }
}

struct GivenSecrets::Stream::Link {
  explicit Link(std::shared_ptr<Hold::Value> its_value)
      : value(std::move(its_value)), redactor(value->patterns()) {}

  std::shared_ptr<Hold::Value> value;
  core::Redactor redactor;
};

GivenSecrets::Stream::Stream(GivenSecrets& given) : given_(&given) {}
GivenSecrets::Stream::Stream(Stream&& other) noexcept = default;
GivenSecrets::Stream::~Stream() = default;

void GivenSecrets::Stream::follow() {
  for (const std::shared_ptr<Hold::Value>& value : given_->values_) {
    const auto is_it = [&](const auto& link) { return link->value == value; };
    if (std::ranges::any_of(links_, is_it)) continue;
    const auto size_of = [](const auto& link) { return link->value->secret.reveal().size(); };
    const auto place = std::ranges::lower_bound(links_, value->secret.reveal().size(),
                                                std::ranges::greater{}, size_of);
    links_.insert(place, std::make_unique<Link>(value));
  }
}

std::string GivenSecrets::Stream::push(std::string_view chunk) {
  follow();
  std::string out{chunk};
  for (const std::unique_ptr<Link>& link : links_) out = link->redactor.push(out);
  return out;
}

// Text that one link held back passes through the links after it.
std::string GivenSecrets::Stream::flush() {
  std::string out;
  for (const std::unique_ptr<Link>& link : links_) {
    std::string passed = link->redactor.push(out);
    passed += link->redactor.flush();
    out = std::move(passed);
  }
  return out;
}

std::string GivenSecrets::clean(std::string_view text) {
  std::string out{text};
  for (const std::shared_ptr<Hold::Value>& value : values_) {
    core::Redactor redactor{value->patterns()};
    std::string cleaned = redactor.push(out);
    cleaned += redactor.flush();
    out = std::move(cleaned);
  }
  return out;
}

std::string GivenSecrets::clean_beginning(std::string_view text) {
  std::string out{text};
  for (const std::shared_ptr<Hold::Value>& value : values_) {
    core::Redactor redactor{value->patterns()};
    out = redactor.push(out);
  }
  return out;
}

bj::value GivenSecrets::clean_json(const bj::value& value) {
  if (const bj::string* text = value.if_string()) {
    return bj::value(bj::string(clean(std::string_view{text->data(), text->size()})));
  }
  if (const bj::array* array = value.if_array()) {
    bj::array out;
    for (const bj::value& entry : *array) out.push_back(clean_json(entry));
    return out;
  }
  if (const bj::object* object = value.if_object()) {
    bj::object out;
    for (const auto& entry : *object) {
      out.insert_or_assign(clean(std::string_view{entry.key()}), clean_json(entry.value()));
    }
    return out;
  }
  return value;
}

}  // namespace berth::plugins
