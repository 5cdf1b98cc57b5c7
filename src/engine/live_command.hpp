#pragma once

#include "places/live_command.hpp"

// A command in a leased place, in the words of those who serve its client. They know the engine and
// not what is below it.
namespace berth::engine {

using places::Ended;
using places::EndOfInput;
using places::LiveCommandPtr;
using places::LoginCommand;
using places::OutputKind;
using places::OutputPiece;
using places::OutputTaker;
using places::SignalNumber;
using CommandInput = places::Input;

}  // namespace berth::engine
