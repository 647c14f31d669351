#!/usr/bin/env bash
# k8s.io/apiextensions-apiserver v0.37.2, pkg/apiserver/validation: a CRD whose integer has `format: int32` and a maximum that is no
# int32 is accepted, and then refuses every number, also small ones.
#
# Guess before: 64512 is fine for `type: integer, format: int32, maximum: 4294967295`, which controller-gen writes for a uint32 with
# a maximum. It was fine for years: formats of integers in CRDs were dropped before objects were judged (v0.34.1 does so).
#
# Behaviour: StripUnsupportedFormatsPostProcessorForVersion (formats.go) keeps int32 and int64 of integers now, whatever the
# compatibility version (in v0.36.3 too), so that kube-openapi's numberValidator sees them. It wants the schema's own bounds to
# be of the format as well (validate/values.go, IsValueValidAgainstRange), and adds its complaint of the schema to what is wrong with
# the object. Creating the CRD says nothing of it. So FRR-K8s v0.0.20, which MetalLB v0.15.3 writes to, takes no FRRConfiguration
# any more: the numbers of its autonomous systems are such integers. Without the format, or with int64, all is well.
#
# Output seen on 30 November 2026 with go1.26:
#   format int32: Maximum boundary value must be of type integer with format int32 in asn
#   format int64: 64512 is valid
#   no format:    64512 is valid
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOG'
package main

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func main() {
	show("format int32:", "int32")
	show("format int64:", "int64")
	show("no format:   ", "")
}

func show(name, format string) {
	maximum := 4294967295.0
	schema := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"asn": {Type: "integer", Format: format, Maximum: &maximum},
	}}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		panic(err)
	}
	wrong := validation.ValidateCustomResource(field.NewPath("spec"), map[string]any{"asn": int64(64512)}, validator)
	if len(wrong) == 0 {
		fmt.Println(name, "64512 is valid")
		return
	}
	fmt.Println(name, wrong[0].Detail)
}
EOG
go mod init finding >/dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.37.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . | tee output
diff output - <<'EOG'
format int32: Maximum boundary value must be of type integer with format int32 in asn
format int64: 64512 is valid
no format:    64512 is valid
EOG
