# find_package(tikreplaylib): the first templates of msOpGen ask for it, for binaries of operators that a device replays.
# There is nothing to link: add_ops_replay_targets of the host toolkit says so where a project has any.
set(tikreplaylib_FOUND TRUE)
