// Nothing: a library that is only there to be found by its name. One function, for who unwinds stacks wants
// every library to say how.
namespace {
[[gnu::used]] void nothing() {}
}  // namespace
