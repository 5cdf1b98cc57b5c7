#pragma once

#include "api/operation.hpp"
#include "api/server_facts.hpp"

#include <map>

namespace berth::engine {
class Engine;
}

namespace berth::api {

// Every operation by its name. It outlives what calls its operations.
class Table {
 public:
  explicit Table(std::vector<Entry> entries);
  Table(Table&&) = default;
  Table& operator=(Table&&) = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  // Null if there is none of that name.
  const Entry* find(std::string_view name) const;

 private:
  std::vector<Entry> entries_;
  std::map<std::string_view, const Entry*> by_name_;
};

// All operations over one engine, which outlives the table.
Table all_operations(engine::Engine& work, const ServerFacts& facts, Examination examination);

}  // namespace berth::api
