package choice

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flags are upstream's --enable-admission-plugins and --disable-admission-plugins.
type Flags struct{ Enable, Disable []string }

// Validate says, a line for each, which names cannot be honoured and why.
func (f Flags) Validate() error {
	var wrong []error
	for _, name := range f.Enable {
		wrong = append(wrong, prefixed("--enable-admission-plugins", name, f.enabling(name)))
	}
	for _, name := range f.Disable {
		wrong = append(wrong, prefixed("--disable-admission-plugins", name, disabling(name)))
	}
	return errors.Join(wrong...)
}

func prefixed(flag, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", flag, name, err)
}

func (f Flags) enabling(name string) error {
	p, known := Find(name)
	switch {
	case !known:
		return unknown()
	case slices.Contains(f.Disable, name):
		return errors.New("cannot be enabled and disabled at once")
	case p.Missing != "":
		return fmt.Errorf("cannot be enabled: %s", p.Missing)
	}
	return nil
}

func disabling(name string) error {
	p, known := Find(name)
	switch {
	case !known:
		return unknown()
	case p.Fixed != "":
		return fmt.Errorf("cannot be disabled: %s", p.Fixed)
	}
	return nil
}

// unknown says which plugins there are.
func unknown() error {
	names := make([]string, len(plugins))
	for i, p := range plugins {
		names[i] = p.Name
	}
	return fmt.Errorf("there is no such plugin; there are %s", strings.Join(names, ", "))
}

// LeftOut are the plugins that would run by default and do not.
func (f Flags) LeftOut() []string { return choose(f.Disable, Plugin.runs) }

// Added are the plugins that run and would not by default.
func (f Flags) Added() []string { return choose(f.Enable, Plugin.waits) }

func choose(names []string, wanted func(Plugin) bool) (chosen []string) {
	for _, name := range names {
		if p, known := Find(name); known && wanted(p) && !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	return chosen
}
