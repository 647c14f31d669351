package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licences are those under which a part of a binary may be passed on beside Apache 2.0, each by a sentence that all its forms have.
// The first that fits names a text.
var licences = []struct{ name, sentence string }{
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"Apache-2.0", "apache license version 2.0"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "permission to use, copy, modify, and or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"CC0-1.0", "creative commons legal code cc0 1.0 universal"},
	{"CC0-1.0", "to the extent possible under law, the author has dedicated all copyright"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// refused are sentences of licences that ask for more: of the source of all that is linked, or about who may use it.
var refused = []string{
	"business source license", "server side public license", "gnu affero general public license", "commons clause", "elastic license",
	"gnu general public license",
}

// titleMax is within how many characters a licence says what it is, behind a line about whose it is.
const titleMax = 400

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)
	sourceFile  = regexp.MustCompile(`(?i)\.(go|s|c|h|py|js|sh)$`)
	space       = regexp.MustCompile(`[\s*#/>]+`)
)

// plain is a text without what differs between two copies of it: case, line ends, marks of comments.
func plain(text string) string { return strings.ToLower(space.ReplaceAllString(text, " ")) }

// licenceOf names the licence of a text, "" for one that is not known, and fails for one that is refused.
func licenceOf(text string) (string, error) {
	text = plain(text)
	for _, sentence := range refused {
		if strings.Contains(text[:min(len(text), titleMax)], sentence) {
			return "", fmt.Errorf("its licence is refused: %q", sentence)
		}
	}
	for _, l := range licences {
		if strings.Contains(strings.ReplaceAll(text, ", version", " version"), l.sentence) {
			return l.name, nil
		}
	}
	return "", nil
}

// texts are the licences and notices in the folder of a module, by their paths in it. Go leaves testdata, and what begins with _ or a
// point, out of builds. Of Go's own folder only the first level counts.
func texts(m module, deep bool) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(m.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != m.Dir && (!deep || name == "testdata" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !licenceFile.MatchString(name) || sourceFile.MatchString(name) {
			return nil
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, m.Dir+string(filepath.Separator))] = strings.TrimSpace(string(text))
		return err
	})
	return found, err
}

// judge names the licences of a module's texts. There must be one that is known at its top.
func judge(m module, texts map[string]string) (string, error) {
	var names []string
	known := false
	for path, text := range texts {
		name, err := licenceOf(text)
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w", m.name(), path, err)
		}
		if name == "" {
			continue
		}
		known = known || !strings.ContainsRune(path, filepath.Separator)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !known {
		return "", fmt.Errorf("%s: no licence that is known in %s", m.name(), m.Dir)
	}
	slices.Sort(names)
	return strings.Join(names, ", "), nil
}
