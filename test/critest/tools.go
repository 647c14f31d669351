//go:build tools

package main

import _ "sigs.k8s.io/cri-tools/pkg/validate"
