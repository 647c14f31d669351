package house

import (
	"go/ast"
	"strings"
	"testing"
)

// withoutFlag are settings that a command has no flag for, and why.
var withoutFlag = map[string]string{
	"config.SigningDuration": "setpoint dev does not ask: a year",
}

// TestHouseSettingsHaveFlags: what a library's user can set, an administrator can, with setpoint server (its options) and setpoint dev
// (its config).
func TestHouseSettingsHaveFlags(t *testing.T) {
	var fields []string
	var commands strings.Builder
	eachSource(t, func(f *sourceFile) {
		switch {
		case f.dir == "server/settings" && !f.test:
			fields = append(fields, fieldNames(f, "Options")...)
		case f.dir == "cmd/setpoint" && !f.test:
			commands.WriteString(f.text)
		}
	})
	if len(fields) < 5 {
		t.Fatalf("settings.Options has the fields %v: it was not read", fields)
	}
	used := map[string]bool{}
	for _, field := range fields {
		for _, of := range []string{"options." + field, "config." + field} {
			if strings.Contains(commands.String(), "&"+of+")") || strings.Contains(commands.String(), "&"+of+",") {
				continue
			}
			if used[of] = true; withoutFlag[of] == "" {
				t.Errorf("no flag in cmd/setpoint sets %s\n\twhy: what only a Go program can set, most people cannot; add a flag, or its reason to withoutFlag", of)
			}
		}
	}
	noLeftovers(t, "withoutFlag", withoutFlag, used)
}

// fieldNames are those of a struct that a file declares.
func fieldNames(f *sourceFile, name string) (names []string) {
	for _, declaration := range f.syntax.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok || named.Name.Name != name {
				continue
			}
			if fields, ok := named.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, ident := range field.Names {
						names = append(names, ident.Name)
					}
				}
			}
		}
	}
	return names
}
