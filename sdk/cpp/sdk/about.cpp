#include "sdk/about.hpp"

#include "base/json/peek.hpp"

namespace berth::sdk {

bj::object manifest_of(const About& about, const Shape& shape, std::string_view worker) {
  bj::object driver{{"driverKey", about.driver_key},
                    {"kind", "sandbox_provider"},
                    {"displayName", about.display_name},
                    {"description", about.description},
                    {"configSchema", shape.config_schema}};
  if (shape.sets_up) driver["supportsInteractiveSetup"] = true;
  if (shape.captures) driver["supportsTemplateCapture"] = true;
  if (shape.deletes_templates) driver["supportsTemplateDelete"] = true;
  if (shape.logs_in) driver["supportsLoginPty"] = true;
  bj::object sandbox;
  if (shape.streams) sandbox["duplexCommandStream"] = true;
  for (const auto& [key, value] : about.driver) driver[key] = value;
  if (const bj::object* own = object_in(about.driver, "sandboxCapabilities")) {
    for (const auto& [key, value] : *own) sandbox[key] = value;
  }
  if (!sandbox.empty()) driver["sandboxCapabilities"] = std::move(sandbox);

  bj::array capabilities{"environment.drivers.register"};
  for (const std::string& capability : about.capabilities) capabilities.emplace_back(capability);
  return {{"id", about.id},
          {"apiVersion", 1},
          {"version", about.version},
          {"displayName", about.display_name},
          {"description", about.description},
          {"author", about.author},
          {"categories", encode(about.categories)},
          {"capabilities", std::move(capabilities)},
          {"entrypoints", bj::object{{"worker", worker}}},
          {"environmentDrivers", bj::array{std::move(driver)}}};
}

}  // namespace berth::sdk
