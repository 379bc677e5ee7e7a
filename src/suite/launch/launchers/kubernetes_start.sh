node=${JOB_COMPLETION_INDEX:-0}
export NNODES="$nodes" NODE_RANK="$node" GPUS_PER_NODE="$ranks" MASTER_ADDR="$first" MASTER_PORT="$port"

fail() {
  echo "tprimat: $2" >&2
  exit "$1"
}

# Pods that share the folder write the same file: each replaces it whole.
write() {  # KEY PATH [+x]
  mkdir -p "$(dirname "$2")" && cp "${0%/*}/$1" "$2.$node.new" && chmod "a+r${3:+,$3}" "$2.$node.new" &&
    mv -f "$2.$node.new" "$2" || fail 1 "cannot write $2 in the pod of node $node"
}

require() {  # PROGRAM
  [ -z "$1" ] || command -v "$1" >/dev/null || fail 127 "the image has no '$1' (command not found)"
}

# The name service may learn the first pod's address later than this pod starts.
find_first_pod() {
  [ "$nodes" -gt 1 ] && command -v getent >/dev/null || return 0
  for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    getent hosts "$first" >/dev/null && return 0
    sleep 4
  done
  fail 1 "the name service does not know the pod of node 0, $first"
}

# One process per rank, with the variables of torchrun: the ranks meet over TCP.
start_ranks() {
  local_rank=0
  while [ "$local_rank" -lt "$ranks" ]; do
    RANK=$((node * ranks + local_rank)) WORLD_SIZE=$((nodes * ranks)) LOCAL_RANK=$local_rank LOCAL_WORLD_SIZE=$ranks \
      "$@" &
    started="$started $!"
    local_rank=$((local_rank + 1))
  done
}

start_training() {
  case $start in
    ranks) start_ranks "$@" ;;
    program) "$@" & ;;
    torchrun)
      if [ "$nodes" -gt 1 ]; then
        "$python" -m torch.distributed.run --nnodes "$nodes" --node-rank "$node" --nproc-per-node "$ranks" \
          --master-addr "$first" --master-port "$port" "$@" &
      else
        "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" "$@" &
      fi
      ;;
  esac
  [ -n "$started" ] || started=$!
}

# Step records that are not printed yet. Each is one write, so that no other output gets between.
print_records() {
  total=$(wc -l 2>/dev/null < "$records") && [ "$total" -gt "$printed" ] || return 0
  sed -n "$((printed + 1)),${total}p" "$records" | while IFS= read -r record; do
    printf 'tprimat-record: %s\n' "$record"
  done
  printed=$total
}

print_until_the_end() {
  trap '' TERM INT
  printed=0
  while [ ! -e "$ended" ]; do
    print_records
    sleep 1
  done
  print_records
}

write_files
[ ! -d "$directory" ] || cd "$directory" || fail 1 "cannot enter $directory"
require "$program"
require "$python"
find_first_pod
# Tells the machine that follows the run whether it sees this folder.
[ -n "$records" ] || echo "$run" > "$folder/seen_by_pod.$node"
ended=${TMPDIR:-/tmp}/tprimat_ended.$run.$node
rm -f "$ended" "$records"
printer= started=
trap 'kill -TERM $started 2>/dev/null' TERM INT
if [ -n "$records" ] && [ "$node" -eq 0 ]; then
  print_until_the_end &
  printer=$!
fi
start_training "$@"
status=0
for process in $started; do
  wait "$process"
  code=$?
  while kill -0 "$process" 2>/dev/null; do  # a signal interrupted the wait
    wait "$process"
    code=$?
  done
  [ "$status" -ne 0 ] || status=$code
done
: > "$ended"
[ -z "$printer" ] || wait "$printer"
exit "$status"
