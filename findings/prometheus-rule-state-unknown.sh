#!/usr/bin/env bash
# github.com/prometheus/prometheus v0.310.0, package rules: AlertingRule.State says "unknown" of a rule that was evaluated and fires, if
# Eval was called by anybody but the package's own Group.
#
# Guess before: State is the state that the last Eval came to, since Eval is what makes alerts pending, firing or inactive.
#
# Behaviour: State first looks at the time of the last evaluation (rules/alerting.go), which Eval does not set: Group.Eval does, with
# SetEvaluationTimestamp. ActiveAlerts and the series ALERTS that Eval returns tell the truth meanwhile. So a test of alerting rules that
# calls Eval and asks for State sees no alert fire, whatever the rules say, and passes if it expects none.
#
# Output seen on 29 November 2026 with go1.26:
#   State unknown, of 1 active alerts: firing
#   with the time set: State firing
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

func main() {
	expr, err := parser.ParseExpr("up == 0")
	if err != nil {
		panic(err)
	}
	none := labels.EmptyLabels()
	rule := rules.NewAlertingRule("Down", expr, 0, 0, none, none, none, "", true, slog.New(slog.DiscardHandler))
	down := func(_ context.Context, _ string, at time.Time) (promql.Vector, error) {
		return promql.Vector{{Metric: labels.FromStrings("__name__", "up", "instance", "a"), T: at.UnixMilli()}}, nil
	}
	now := time.Now()
	if _, err := rule.Eval(context.Background(), 0, now, down, nil, 0); err != nil {
		panic(err)
	}
	alerts := rule.ActiveAlerts()
	fmt.Printf("State %v, of %d active alerts: %v\n", rule.State(), len(alerts), alerts[0].State)
	rule.SetEvaluationTimestamp(now)
	fmt.Printf("with the time set: State %v\n", rule.State())
}
EOF
go mod init finding >/dev/null 2>&1
go get github.com/prometheus/prometheus@v0.310.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . | tee output
diff output - <<'EOF'
State unknown, of 1 active alerts: firing
with the time set: State firing
EOF
