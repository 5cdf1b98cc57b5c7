#include "base/log.hpp"

#include "base/clock.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <boost/json/serialize.hpp>

#include <atomic>
#include <memory>

namespace berth::log {
namespace {

std::atomic<Level> lowest_level{Level::info};
std::atomic<Format> line_format{Format::text};

// spdlog provides the lock, the flush and the level; the line format is ours.
spdlog::logger& sink() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("berth",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: return "error";
    case Level::off: break;
  }
  return "off";
}

std::string json_line(std::string_view at, Level level, std::string_view event, Fields fields) {
  boost::json::object line{{"ts", at}, {"level", name_of(level)}, {"event", event}};
  for (const auto& [key, value] : fields) line[key] = value.json();
  return boost::json::serialize(line);
}

std::string text_line(std::string_view at, Level level, std::string_view event, Fields fields) {
  std::string line{at};
  line += " ";
  line += name_of(level);
  line += " ";
  line += event;
  for (const auto& [key, value] : fields) {
    line += " ";
    line += key;
    line += "=";
    line +=
        boost::json::serialize(value.json());  // quoted and escaped: a value cannot forge a line
  }
  return line;
}

}  // namespace

void configure(Level lowest, Format format) {
  lowest_level = lowest;
  line_format = format;
}

bool enabled(Level level) {
  return level >= lowest_level.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view event, Fields fields) {
  if (!enabled(level)) return;
  const std::string at = to_iso8601(SystemClock{}.now());
  const bool json = line_format.load(std::memory_order_relaxed) == Format::json;
  sink().info(json ? json_line(at, level, event, fields) : text_line(at, level, event, fields));
  sink().flush();
}

}  // namespace berth::log
