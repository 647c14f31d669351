package mutants

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Change is a text of one file, replaced by another.
type Change struct {
	// File is the path below the module. Old occurs in it exactly once.
	File, Old, New string
}

// mutate returns the texts of the changed files, by their paths below the module.
func mutate(root string, changes []Change) (map[string]string, error) {
	texts := map[string]string{}
	for _, c := range changes {
		if _, ok := texts[c.File]; !ok {
			text, err := os.ReadFile(filepath.Join(root, c.File))
			if err != nil {
				return nil, err
			}
			texts[c.File] = string(text)
		}
		if n := strings.Count(texts[c.File], c.Old); n != 1 {
			return nil, fmt.Errorf("its text is %d times in %s, not once:\n%s", n, c.File, c.Old)
		}
		texts[c.File] = strings.Replace(texts[c.File], c.Old, c.New, 1)
	}
	for file, text := range texts {
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// overlay writes the changed files and the list that go's -overlay reads into dir, and returns the path of the list.
func overlay(root, dir string, changes []Change) (string, error) {
	texts, err := mutate(root, changes)
	if err != nil {
		return "", err
	}
	return Overlay(root, dir, texts)
}

// Overlay writes texts, by their files' paths below root, and the list that go's -overlay reads into dir, and returns the path of the list.
func Overlay(root, dir string, texts map[string]string) (string, error) {
	replaced := map[string]string{}
	for file, text := range texts {
		mutated := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(root, file)] = mutated
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
