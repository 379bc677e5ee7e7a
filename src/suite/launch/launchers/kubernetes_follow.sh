pods="jobset.sigs.k8s.io/jobset-name=$name"
errors=$folder/kubectl.err
state=$folder/pods.state
cause=$folder/cause.txt
failure= code=1 seen_all= unreachable=0 place_since= followers= looks=0
ending=0 gone=0 warning= shown= keeper= shower= recorder=

# One line per pod. The message comes last, since it may hold anything.
c='.status.containerStatuses[?(@.name=="train")]'
s='.status.conditions[?(@.type=="PodScheduled")]'
i='.metadata.annotations.batch\.kubernetes\.io/job-completion-index'
template="{range .items[*]}pod|{.metadata.name}|{$i}|{.status.phase}|{.status.reason}|{$c.state.waiting.reason}"
template="$template|{$c.state.terminated.reason}|{$c.state.terminated.exitCode}|{$s.reason}"
template="$template|{$c.state.waiting.message} {$s.message} {.status.message}{'\n'}{end}"

# Further lines of a message join the first.
look() {
  kube get pods --request-timeout=30s --selector "$pods" --output "jsonpath=$template" > "$state.new" 2> "$errors" &&
    awk '/^pod[|]/ { if (n++) print ""; printf "%s", $0; next } { printf " %s", $0 } END { if (n) print "" }' \
      "$state.new" > "$state"
}

# Why the run fails, or waits: KIND and a sentence. The last one holds.
state_cause() {
  printf '%s %s' "$1" "$2" | tr -s '\n\t ' '   ' | cut -c 1-600 > "$cause.new" && mv -f "$cause.new" "$cause"
}

# A problem of a pod counts more than the exit status of its program, which the log explains.
fail() {  # KIND SENTENCE EXIT
  [ "$failure" != pod ] || return 0
  failure=pod code=${3:-1}
  state_cause "$1" "$2"
  echo "kubernetes: $2"
}

last_warning() {  # OBJECT
  kube get events --request-timeout=30s --field-selector "involvedObject.name=$1,type=Warning" \
    --output "jsonpath={range .items[*]}{.reason}: {.message}{'\n'}{end}" 2>/dev/null | grep . | tail -n 1
}

create() {
  kube create --request-timeout=60s --filename "$folder/jobset.yaml" > "$state" 2> "$errors" && return 0
  said=$(grep . "$errors" | tail -n 1)
  case $(cat "$errors") in
    *'no matches for kind "JobSet"'*)
      fail missing_program "the cluster has no JobSet (jobset.x-k8s.io/v1alpha2); install it: https://jobset.sigs.k8s.io/docs/installation/" ;;
    *AlreadyExists* | *'already exists'*)
      fail error "a JobSet or ConfigMap named $name already exists; to delete it: sh $folder/delete.sh"
      exit 1 ;;
    *Forbidden* | *forbidden*) fail no_access "the cluster refuses the JobSet, permission denied: $said" ;;
    *) fail error "kubectl cannot create the JobSet: $said" ;;
  esac
  delete
  exit 1
}

delete() {
  kube delete --filename "$folder/jobset.yaml" --ignore-not-found --cascade=foreground --timeout=50s > /dev/null 2>> "$errors"
}

# The whole log of a pod. A connection that breaks is made again, without the lines that are there.
follow_pod() {  # INDEX POD
  log=$folder/node_$1.log
  kube logs --follow --container train "$2" 2>> "$errors" >> "$log"
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    phase=$(kube get pod "$2" --request-timeout=30s --output 'jsonpath={.status.phase}' 2>/dev/null)
    lines=$(wc -l < "$log")
    [ "$phase" = Running ] || break
    sleep 1
    kube logs --follow --container train "$2" 2>> "$errors" | sed -u "1,${lines}d" >> "$log"
  done
  kube logs --container train "$2" 2>> "$errors" | sed "1,${lines}d" >> "$log"
}

start_following() {  # INDEX POD
  eval "[ -z \"\$followed_$1\" ]" || return 0
  eval "followed_$1=$2"
  follow_pod "$1" "$2" &
  followers="$followers $!"
}

# Reasons for which a pod never starts.
judge_waiting() {  # POD INDEX REASON SCHEDULED MESSAGE
  case $3 in
    ImagePullBackOff | InvalidImageName | ErrImageNeverPull | RegistryUnavailable)
      fail missing_program "the pod of node $2 cannot get its image ($3): $5" ;;
    CreateContainerConfigError | CreateContainerError | RunContainerError | StartError)
      fail error "the pod of node $2 cannot start ($3): $5" ;;
  esac
  if [ "$4" = Unschedulable ]; then
    lacking="the cluster cannot schedule the pod of node $2 (Unschedulable): $5"
  else
    [ $((looks % 10)) -ne 5 ] || warning=$(last_warning "$1")
    waits="the pod of node $2 waits (${3:-${4:-not started}})${warning:+: $warning}"
  fi
}

judge_ended() {  # POD INDEX REASON ENDED CODE MESSAGE
  case $3 in
    Evicted | Preempting | NodeLost | NodeAffinity | Shutdown | NodeShutdown | Terminated | UnexpectedAdmissionError | DeadlineExceeded)
      fail ended_by_scheduler "the cluster ended the pod of node $2 ($3): $6"; return ;;
  esac
  case $4 in
    OOMKilled) fail host_out_of_memory "out of host memory: the kernel killed the pod of node $2 (OOMKilled); its limit is launch.kubernetes.memory" "${5:-137}" ;;
    ContainerCannotRun | StartError | ContainerStatusUnknown) fail error "the pod of node $2 cannot run ($4): $6" "${5:-1}" ;;
    *) [ -n "$failure" ] || { failure=program; code=${5:-1}; [ "$code" -ne 0 ] || code=1; } ;;
  esac
}

judge_pods() {
  count=0 alive=0 succeeded=0 waits= lacking=
  while IFS='|' read -r mark pod index phase reason waiting ended exit_code scheduled message; do
    [ "$mark" = pod ] || continue
    case $index in '' | *[!0-9]*) continue ;; esac
    count=$((count + 1))
    case $phase in
      Pending) alive=$((alive + 1)); judge_waiting "$pod" "$index" "$waiting" "$scheduled" "$message" ;;
      Running) alive=$((alive + 1)); start_following "$index" "$pod" ;;
      Succeeded) succeeded=$((succeeded + 1)); start_following "$index" "$pod" ;;
      Failed) start_following "$index" "$pod"; judge_ended "$pod" "$index" "$reason" "$ended" "$exit_code" "$message" ;;
      *) alive=$((alive + 1)) ;;
    esac
  done < "$state"
  if [ "$count" -eq 0 ] && [ -z "$seen_all" ]; then
    [ $((looks % 10)) -ne 5 ] || warning=$(last_warning "$name-node-0")
    waits="no pod exists yet${warning:+: $warning}"
  fi
}

# The time for which no node has place, and what is written meanwhile.
judge_place() {
  [ -z "$failure" ] || return 0
  if [ -n "$lacking" ]; then
    place_since=${place_since:-$(date +%s)}
    [ "$pending" -eq 0 ] || [ $(($(date +%s) - place_since)) -lt "$pending" ] || fail error "$lacking"
  else
    place_since=
  fi
  [ -z "$failure" ] || return 0
  now=${lacking:-$waits}
  [ "$now" = "$shown" ] || [ -z "$now" ] || echo "kubernetes: $now"
  shown=$now
  if [ -n "$now" ]; then state_cause error "$now"; else rm -f "$cause"; fi
}

watch() {
  while :; do
    looks=$((looks + 1))
    if look; then
      unreachable=0
      judge_pods
      judge_place
      [ "$count" -lt "$nodes" ] || seen_all=yes
      [ "$succeeded" -lt "$nodes" ] || { code=0; return; }
      if [ -n "$failure" ]; then
        ending=$((ending + 1))  # the others end, too: their last words may be the cause
        { [ "$alive" -gt 0 ] && [ "$failure" = program ] && [ "$ending" -lt 15 ]; } || return
      elif [ -n "$seen_all" ] && [ "$alive" -eq 0 ] && [ $((gone = gone + 1)) -ge 3 ]; then
        fail killed "$((nodes - count)) of $nodes pods vanished: they were deleted, or their node is gone"
        return
      fi
    else
      unreachable=$((unreachable + 1))
      [ "$unreachable" -lt 15 ] || { fail error "kubectl cannot read the pods: $(grep . "$errors" | tail -n 1)"; return; }
    fi
    sleep 2
  done
}

# Everything that the followers still read is shown before the end.
collect() {
  kube describe pods --request-timeout=30s --selector "$pods" > "$folder/pods.txt" 2>> "$errors"
  for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=
    for follower in $followers; do kill -0 "$follower" 2>/dev/null && left=yes; done
    [ -n "$left" ] || break
    sleep 1
  done
  end_following
}

end_following() {
  [ -n "$keeper" ] || return 0
  kill $followers "$keeper" 2>/dev/null
  wait "$keeper" 2>/dev/null
  wait "$shower" $recorder 2>/dev/null
}

stop() {
  trap '' TERM INT HUP
  kube delete --filename "$folder/jobset.yaml" --ignore-not-found --wait=false > /dev/null 2>> "$errors"
  end_following
  exit 143
}

trap '' PIPE
trap stop TERM INT HUP
rm -f "$cause" "$folder"/node_*.log "$folder"/seen_by_pod.*
[ -z "$records" ] || : > "$records"
logs=
index=0
while [ "$index" -lt "$nodes" ]; do
  : > "$folder/node_$index.log"
  logs="$logs node_$index.log"
  index=$((index + 1))
done
cd "$folder" || exit 1
create
# Both end with this process, when they have read what is there.
sleep 1000000000 & keeper=$!
tail --pid="$keeper" -q -n +1 -s 0.2 -F $logs 2>/dev/null | sed -u '/tprimat-record: /d' & shower=$!
if [ -n "$records" ]; then
  tail --pid="$keeper" -n +1 -s 0.2 -F node_0.log 2>/dev/null | sed -u -n 's/^.*tprimat-record: //p' >> "$records" &
  recorder=$!
fi
watch
collect
delete
if [ "$code" -eq 0 ] && [ -n "$shared" ] && [ "$(cat seen_by_pod.0 2>/dev/null)" != "$name" ]; then
  fail error "this machine does not see the pods' folder $folder: mount their volume here at the same path, or choose an --output outside the volumes"
fi
exit "$code"
