// Who may touch device memory: what is between these two calls, while a strict host runtime
// (ASCEND_GRAPH_STRICT=1) keeps everybody else out. In any other they do nothing.
#ifndef ASCEND_GRAPH_ENTERING_H
#define ASCEND_GRAPH_ENTERING_H

#ifdef __cplusplus
extern "C" {
#endif

// Lets the process at device memory on behalf of `name`, which has to live until the end (null: of who was
// let in already); returns who was let in before, for ascendgraphLeave.
const char* ascendgraphEnter(const char* name);
void ascendgraphLeave(const char* before);

#ifdef __cplusplus
}  // extern "C"

namespace ascend_graph::host {

class Entering {
  public:
    explicit Entering(const char* name) : before_(ascendgraphEnter(name)) {}
    ~Entering() { ascendgraphLeave(before_); }
    Entering(const Entering&) = delete;
    Entering& operator=(const Entering&) = delete;

  private:
    const char* before_;
};

}  // namespace ascend_graph::host
#endif

#endif  // ASCEND_GRAPH_ENTERING_H
