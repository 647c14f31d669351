package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit  = "MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	bsd  = "// Redistribution and use in source and binary forms, with or without\n// modification, are permitted provided that"
	mpl  = "Mozilla Public License, version 2.0\n\n1. Definitions"
	busl = "Business Source License 1.1\n\nParameters"
)

// TestLicenceOf: by a sentence, however it is broken into lines; what asks for more is refused, and what is not known is not guessed.
func TestLicenceOf(t *testing.T) {
	for text, want := range map[string]string{mit: "MIT", bsd: "BSD", mpl: "MPL-2.0", "Do what you like.": ""} {
		if got, err := licenceOf(text); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{busl, "Copyright 2020 The Authors\n\n  GNU AFFERO GENERAL PUBLIC LICENSE\n"} {
		if got, err := licenceOf(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}

// folder writes a module's files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNotices: each module with its licences, each text once, those of folders below and notices too, and not what no build holds.
func TestNotices(t *testing.T) {
	modules := []module{
		{"example.com/product", "", folder(t, map[string]string{"LICENSE": mpl, "docs/LICENSE": "not looked at"})},
		{"example.com/a", "v1.0.0", folder(t, map[string]string{"LICENSE.txt": mit, "third/COPYING": bsd, "license.go": "package a"})},
		{"example.com/b", "v2.0.0", folder(t, map[string]string{"Licence": mit + "\n", "NOTICE": "thanks", "testdata/LICENSE": busl})},
		{"Go's own library", "go1", folder(t, map[string]string{"LICENSE": bsd})},
	}
	var out bytes.Buffer
	if err := writeNotices(&out, modules); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"example.com/product: MPL-2.0\nexample.com/a v1.0.0: BSD, MIT\nexample.com/b v2.0.0: MIT\nGo's own library go1: BSD\n",
		"\nexample.com/a v1.0.0: LICENSE.txt\nexample.com/b v2.0.0: Licence\n\nMIT License\n", "\nexample.com/b v2.0.0: NOTICE\n\nthanks\n",
		"\nexample.com/a v1.0.0: third/COPYING\nGo's own library go1: LICENSE\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "MIT License") != 1 || strings.Contains(text, "not looked at") || strings.Contains(text, "Business") {
		t.Errorf("too much in\n%s", text)
	}
}

// TestNoticesThatAreMissing: a module without a licence, with one that nobody knows, with one only below, or with one that is refused,
// is named.
func TestNoticesThatAreMissing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none": {"README.md": "hello"}, "not known": {"LICENSE": "Do what you like."}, "only below": {"third/LICENSE": mit},
		"refused": {"LICENSE": busl}, "refused below": {"LICENSE": mit, "enterprise/LICENSE": busl},
	} {
		modules := []module{
			{"example.com/product", "", folder(t, map[string]string{"LICENSE": mit})}, {"example.com/a", "v1.0.0", folder(t, files)},
			{"Go's own library", "go1", folder(t, map[string]string{"LICENSE": bsd})},
		}
		if err := writeNotices(&bytes.Buffer{}, modules); err == nil || !strings.Contains(err.Error(), "example.com/a v1.0.0: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoticesOfTheProduct: all that is linked may be passed on. Without the product's binary it is this test's own.
func TestNoticesOfTheProduct(t *testing.T) {
	binary := os.Getenv("SETPOINT_TEST_BINARY")
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := notices(&out, []string{binary}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ngithub.com/setpoint-io/setpoint: Apache-2.0\n", "\nGo's own library go1.", "\ngithub.com/google/go-containerregistry v",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the list", want)
		}
	}
}
