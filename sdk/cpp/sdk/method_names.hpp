#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace berth::sdk {

// Every method of the protocol. One of these without a hook is "not implemented", any other one is
// "unknown".
inline constexpr std::array method_names{
    std::string_view{"initialize"},
    std::string_view{"validateConfig"},
    std::string_view{"configChanged"},
    std::string_view{"health"},
    std::string_view{"shutdown"},
    std::string_view{"environmentValidateConfig"},
    std::string_view{"environmentProbe"},
    std::string_view{"environmentAcquireLease"},
    std::string_view{"environmentResumeLease"},
    std::string_view{"environmentReleaseLease"},
    std::string_view{"environmentDestroyLease"},
    std::string_view{"environmentRealizeWorkspace"},
    std::string_view{"environmentExecute"},
    std::string_view{"environmentRunnerIngressEndpoint"},
    std::string_view{"environmentSyncIn"},
    std::string_view{"environmentSyncOut"},
    std::string_view{"environmentStartInteractiveSetup"},
    std::string_view{"environmentGetInteractiveSetup"},
    std::string_view{"environmentCaptureTemplate"},
    std::string_view{"environmentCancelInteractiveSetup"},
    std::string_view{"environmentDeleteTemplate"},
    std::string_view{"loginPtyOpen"},
    std::string_view{"loginPtyInput"},
    std::string_view{"loginPtyStop"},
    std::string_view{"loginPtyClose"},
    std::string_view{"setupTokenPtyOpen"},
    std::string_view{"setupTokenPtyInput"},
    std::string_view{"setupTokenPtyStop"},
    std::string_view{"setupTokenPtyClose"},
    std::string_view{"duplexChannelOpen"},
    std::string_view{"duplexChannelWrite"},
    std::string_view{"duplexChannelStop"},
    std::string_view{"duplexChannelClose"},
    std::string_view{"onEvent"},
    std::string_view{"runJob"},
    std::string_view{"getData"},
    std::string_view{"performAction"},
    std::string_view{"executeTool"},
    std::string_view{"handleWebhook"},
    std::string_view{"handleApiRequest"},
    std::string_view{"detectExternalObjects"},
    std::string_view{"resolveExternalObject"},
    std::string_view{"refreshExternalObjects"},
};

constexpr bool is_method_name(std::string_view name) {
  return std::ranges::find(method_names, name) != method_names.end();
}

}  // namespace berth::sdk
