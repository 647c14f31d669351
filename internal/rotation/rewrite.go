package rotation

import "fmt"

// rewriting says how much is stored that the old key has encrypted, by the member that has most: the others are behind, or ahead.
func (s State) rewriting(members []Member) []Waiting {
	most := 0
	for _, m := range members {
		held, _ := m.find(s.Kind)
		most = max(most, held.ToRewrite)
	}
	if most == 0 {
		return nil
	}
	return []Waiting{{"the leader", fmt.Sprintf("it has %d objects to write again with the new one", most)}}
}

// refuses fails with ErrRefused if a member has settings by which the administrator rotates it himself.
func refuses(kind Kind, members []Member) error {
	for _, m := range members {
		if held, _ := m.find(kind); held.Refuses != "" {
			return fmt.Errorf("%w: %s: %s", ErrRefused, m.Name, held.Refuses)
		}
	}
	return nil
}

// Needed are the keys that somebody may still want in the state: the old one goes with the last phase, and that of what is
// stored with the next rotation: what came late can still be read, and written again.
func (s State) Needed(keys Keys) Keys {
	_, wanted := s.Wanted()
	if s.Kind == EncryptionKey && (s.Phase == Drop || s.Phase == Done) && s.From != "" {
		wanted = append(wanted, s.From)
	}
	kept := Keys{}
	for _, id := range wanted {
		if key, ok := keys[id]; ok {
			kept[id] = key
		}
	}
	return kept
}
