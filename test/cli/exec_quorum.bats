#!/usr/bin/env bats
# belay exec --redlock: servers that are dead, stopped or slow, at the start and while the command
# runs.
load helper

@test "each combination of faults of three servers, and those of five in which one server decides" {
  new_folder
  run python3 "$here/support/quorum.py" "$(server_program)" "$server_folder"
  echo "$output"
  [ "$status" = 0 ]
  echo "# ${lines[-1]}" >&3
}

@test "no server of three: an error for each, without its password" {
  local urls="-u redis://me:secret@127.0.0.1:1 -u redis://127.0.0.1:2 -u unix:///nonexistent"
  run -120 belay exec job --redlock $urls --timeout 300ms -- touch "$HOME/ran"
  has "$output" "belay: exec: cannot acquire: too few of the servers answered: 0 of 3"
  has "$output" "belay: exec: redis://127.0.0.1:1: no server could be reached"
  lacks "$output" secret
  [ ! -e "$HOME/ran" ]
}

@test "servers that refuse are distinguished from servers that are away" {
  local urls=() i
  for i in 1 2 3; do
    start_server --requirepass right
    urls+=(-u "unix://:wrong@$server_socket")
  done 2>/dev/null
  run -123 belay exec job --redlock "${urls[@]}" -- touch "$HOME/ran"
  has "$output" "cannot acquire: the server refused the user or password"
  lacks "$output" wrong@
  [ ! -e "$HOME/ran" ]
}
