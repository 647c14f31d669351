// Package everykind stores an object of every kind that a cluster serves, and judges later whether all are what they were.
//
// It owns what is stored, and what of an object may change meanwhile: its status, and what servers write down beside it. Which kinds there
// are the cluster itself says (discovery); the objects are the cases that the kinds' own tests have, so a kind that comes with its cases is
// stored too, and one without any is an error. It calls the API and nothing of the product.
//
// Tested by TestEveryKindSurvivesItsServers, which asks each server of a cluster while another one is away that was killed, and after it is
// back; make versions uses it for each roll of a release.
package everykind
