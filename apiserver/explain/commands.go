package explain

import (
	"encoding/json"
	"strings"
)

// kubectl is a command on an object; args are quoted for a shell.
func kubectl(namespace string, args ...string) string {
	words := []string{"kubectl"}
	if namespace != "" {
		words = append(words, "-n", quoted(namespace))
	}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@+", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// patch is the command that patches an object.
func patch(o Object, kind string, patch any) string {
	text, err := json.Marshal(patch)
	if err != nil {
		return "" // cannot happen for maps of strings
	}
	return kubectl(o.Namespace, "patch", o.qualified(), o.Name, "--type="+kind, "-p", string(text))
}

// qualified is the resource with its group, as kubectl takes it.
func (o Object) qualified() string {
	if o.Group == "" {
		return o.Resource
	}
	return o.Resource + "." + o.Group
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// fields are nested fields of a merge patch.
func fields(value any, path ...string) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value
}
