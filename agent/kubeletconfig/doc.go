// Package kubeletconfig reads a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) for the agent.
//
// It owns: which fields of it the agent honours (fields.go), their defaults, which are upstream's, and Settings, what they mean
// for the parts of the agent. It may call: the sibling packages whose policies it fills in.
//
// Promises: a field is honoured, or refused with its path; nothing is accepted and then ignored. A value that says what the
// agent does in any case is accepted. Fields that are empty or zero durations are as good as missing, as upstream.
//
// Tested with tables; one of them names every field that upstream has, so a new one is noticed.
package kubeletconfig
