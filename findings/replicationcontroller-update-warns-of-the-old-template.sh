#!/usr/bin/env bash
# k8s.io/kubernetes v1.37.2, pkg/registry/core/replicationcontroller: who updates a ReplicationController is warned about the template
# that was there before, and not about the new one.
#
# Guess before: an update is warned of what it writes, as with Deployments: a template with a deprecated label in its nodeSelector
# brings the warning, and the update that takes the label out brings none.
#
# Behaviour: the other way round. WarningsOnUpdate (strategy.go) hands the old template and the new one to GetWarningsForPodTemplate
# in the wrong order. So whoever puts the label in is not told; whoever takes it out is told about it, and a script that mends what it is
# warned of never ends. The strategies of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs have the right order.
#
# Output seen on 30 November 2026 with go1.26:
#   the label is put in:    0 warnings
#   the label is taken out: spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOG'
package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
)

// controller has a template that chooses nodes by labels.
func controller(generation int64, selector map[string]string) *core.ReplicationController {
	rc := &core.ReplicationController{Spec: core.ReplicationControllerSpec{
		Template: &core.PodTemplateSpec{Spec: core.PodSpec{NodeSelector: selector}},
	}}
	rc.Generation = generation
	return rc
}

func main() {
	label := map[string]string{"beta.kubernetes.io/os": "linux"}
	show("the label is put in:   ", controller(2, label), controller(1, nil))
	show("the label is taken out:", controller(2, nil), controller(1, label))
}

func show(what string, rc, old *core.ReplicationController) {
	warnings := replicationcontroller.Strategy.WarningsOnUpdate(context.Background(), rc, old)
	if len(warnings) == 0 {
		warnings = []string{"0 warnings"}
	}
	fmt.Println(what, strings.Join(warnings, "; "))
}
EOG
go mod init finding >/dev/null 2>&1
# Kubernetes is no library: what it has of its own folders is published beside it.
for module in $(go mod download -json k8s.io/kubernetes@v1.37.2 | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p' | xargs sed -n 's|^\t\(k8s.io/[^ ]*\) => ./staging/.*|\1|p'); do
  go mod edit -replace "$module=$module@v0.37.2"
done
go get k8s.io/kubernetes@v1.37.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . 2>&1 | tee output
diff output - <<'EOO'
the label is put in:    0 warnings
the label is taken out: spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
EOO
