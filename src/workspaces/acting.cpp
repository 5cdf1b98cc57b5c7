#include "workspaces/acting.hpp"

#include <sys/fsuid.h>

namespace berth::workspaces {
namespace {

// The calls return the previous id and do not report success, so the only check is to ask again.
Owner acting_now() {
  return {.uid = static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))),
          .gid = static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)))};
}

// The group first: the right to choose it is lost with the user.
void act(const Owner& user) {
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
}

// The user first: the right to choose the group comes back with it.
void act_again(const Owner& user) {
  ::setfsuid(user.uid);
  ::setfsgid(user.gid);
}

}  // namespace

Result<Acting> Acting::as(const std::optional<Owner>& user) {
  Acting acting;
  const Owner before = acting_now();
  if (!user || (user->uid == before.uid && user->gid == before.gid)) return acting;
  acting.before_ = before;
  act(*user);
  const Owner now = acting_now();
  if (now.uid != user->uid || now.gid != user->gid) {
    return fail(Errc::io_failed,
                "this server may not work with files as user " + std::to_string(user->uid),
                "run it as root, or as that user");
  }
  return acting;
}

Acting::~Acting() {
  if (before_) act_again(*before_);
}

}  // namespace berth::workspaces
