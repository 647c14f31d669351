#!/usr/bin/env bash
# The part of run.sh that runs in a network namespace of its own (../alone.sh): a cluster, the suite, the end of the cluster.
set -euo pipefail

ready_timeout_seconds=60
"$setpoint" dev --data-dir "$keep/cluster" --port 6443 --simulated-nodes 0 --images-dir "$suite_dir/images" --ingress-http-port 8000 \
  --ingress-https-port 8001 --load-balancer-addresses 192.0.2.64/27 --log-level warn >"$keep/setpoint.log" 2>&1 &
server=$!
export KUBECONFIG=$keep/cluster/admin.kubeconfig
# Containers outlive their agent: they go first. Nothing is removed below which something is still mounted.
finish() {
  "$setpoint" kubectl delete namespaces --selector gateway-conformance --wait=false >/dev/null 2>&1 || true
  "$setpoint" kubectl delete pods --all --all-namespaces --now >/dev/null 2>&1 || true
  local deadline=$((SECONDS + 60))
  while compgen -G "$keep/cluster/runtime/sandboxes/*" >/dev/null && ((SECONDS < deadline)); do sleep 0.2; done
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  grep -qF " $keep/cluster/" /proc/self/mountinfo || rm -rf --one-file-system "$keep/cluster"
}
trap finish EXIT

deadline=$((SECONDS + ready_timeout_seconds))
until "$setpoint" kubectl wait --for=condition=Accepted gatewayclass/setpoint --timeout=5s >/dev/null 2>&1; do
  if ((SECONDS >= deadline)) || ! kill -0 "$server" 2>/dev/null; then
    cat "$keep/setpoint.log" >&2
    exit 2
  fi
  sleep 0.2
done

"$suite_dir/gateway.test" -test.v -test.timeout 40m -setpoint-version "$version" -report-output "$keep/report.yaml" \
  ${run:+-run-test "$run"} >"$keep/output" 2>&1 && passed=0 || passed=1
grep -E '^ *--- (PASS|FAIL): TestConformance/[^/]+ ' "$keep/output" || tail -20 "$keep/output"
exit "$passed"
