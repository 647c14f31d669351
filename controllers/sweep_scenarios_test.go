package controllers

import (
	"slices"
)

// scenarios are all that is played.
var scenarios = slices.Concat(rollouts, statefulSets, daemonSets, jobs, services, nodes, basics, storage, devices)

var daemonSets = []scenario{{
	name: "daemon set", controllers: []string{"daemonset-controller"}, steps: daemonSteps, machines: runWherePinned, holds: onePerNode,
}}

// notSwept are the controllers that play in no scenario, with the reason.
var notSwept = map[string]string{
	"cluster-objects-controller":                     reasonOneByOne,
	"bootstrap-token-controller":                     reasonOneByOne,
	"certificate-controller":                         reasonOneByOne,
	"certificatesigningrequest-cleaner-controller":   reasonOneByOne,
	"podcertificaterequest-cleaner-controller":       reasonOneByOne,
	"service-lb-controller":                          reasonOneByOne,
	"dns-service-controller":                         reasonOneByOne,
	"event-ttl-controller":                           reasonOneByOne,
	"legacy-serviceaccount-token-cleaner-controller": reasonOneByOne,
	"tokens-controller":                              reasonOneByOne,
	"ingress-controller":                             reasonOneByOne,
	"gateway-controller":                             reasonClient,
	"volume_expand":                                  reasonEvents,
	"unattended-controller":                          reasonEvents,
	"crd-controller":                                 reasonClient,
	"local-volume-controller":                        reasonClient,
	"apiservice-controller":                          reasonClient,
	"storage-version-migrator-controller":            reasonClient,
	"horizontal-pod-autoscaler-controller":           reasonClient,
}

// Why a controller plays in no scenario.
const (
	reasonOneByOne = "each of its writes is decided by itself, from what was read for it; its own tests refuse them"
	reasonEvents   = "it writes nothing but events"
	reasonClient   = "it reads or writes through clients that the world does not have"
)
