# The name under which older run scripts source the environment.
. "$(dirname "${BASH_SOURCE:-$0}")/../set_env.sh"
