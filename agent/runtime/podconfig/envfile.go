package podconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// EnvFileSizeMax bounds a file with variables, in bytes. The API limits values to 32 KiB; a kubelet reads files of any size.
const EnvFileSizeMax = 64 << 10

// fileKey is the value of a key of a file in a volume (KEP-3721).
func fileKey(in EnvInput, ref *corev1.FileKeySelector) (string, bool, error) {
	optional := ref.Optional != nil && *ref.Optional
	body, err := in.File(ref.VolumeName, ref.Path)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return "", false, nil
	}
	if err != nil {
		return "", false, &ConfigError{Message: fmt.Sprintf("couldn't read env file %q of volume %q: %v", ref.Path, ref.VolumeName, err)}
	}
	value, err := envFileValue(string(body), ref.Key)
	switch {
	case err != nil:
		return "", false, &ConfigError{Message: fmt.Sprintf("couldn't parse env file %q of volume %q: %v", ref.Path, ref.VolumeName, err)}
	case value == "" && optional:
		return "", false, nil
	case value == "":
		return "", false, &ConfigError{Message: fmt.Sprintf("environment variable key %q not found in file %q", ref.Key, ref.Path)}
	}
	return value, true, nil
}

// envFileValue looks a key up in a file of lines NAME='value'. Values stand in single quotes, may have several lines, and are
// taken as they are. Empty lines and comments are skipped; a blank after the equals sign makes the value empty. As with a
// kubelet, what follows the key is not looked at, and a key that is not there has an empty value.
func envFileValue(text, key string) (string, error) {
	number := 1
	for text != "" {
		line, after, _ := strings.Cut(text, "\n")
		if blank := strings.TrimLeft(line, " \t"); strings.TrimRight(blank, "\r") == "" || blank[0] == '#' {
			text, number = after, number+1
			continue
		}
		name, value, rest, err := envAssignment(strings.TrimLeft(text, " \t"))
		switch {
		case err != nil:
			return "", fmt.Errorf("line %d: %w", number, err)
		case name == key:
			return value, nil
		}
		number += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
	}
	return "", nil
}

// envAssignment splits the first assignment off a text that begins with one.
func envAssignment(text string) (name, value, rest string, err error) {
	line, after, _ := strings.Cut(text, "\n")
	name, assigned, found := strings.Cut(line, "=")
	switch {
	case !found:
		return "", "", "", errors.New("missing '='")
	case strings.TrimRight(name, " \t") == "":
		return "", "", "", errors.New("empty variable name")
	case strings.TrimRight(name, " \t") != name:
		return "", "", "", errors.New("whitespace before '=' is not allowed")
	case strings.HasPrefix(assigned, " ") || strings.HasPrefix(assigned, "\t"):
		return name, "", after, nil
	case !strings.HasPrefix(assigned, "'"):
		return "", "", "", errors.New("value must be enclosed in single quotes")
	}
	value, rest, closed := strings.Cut(text[len(name)+len("='"):], "'")
	if !closed {
		return "", "", "", errors.New("unclosed single quote")
	}
	tail, rest, _ := strings.Cut(rest, "\n")
	if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
		return "", "", "", errors.New("unexpected content after closing quote")
	}
	return name, strings.ReplaceAll(value, "\r\n", "\n"), rest, nil
}
