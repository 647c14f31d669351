// Package timing measures how long admission takes, under upstream's names of metrics.
//
// It owns the metrics of one server. apiserver/admission asks it for a Timer for each plugin and for each half of its chain, once, so
// that a request finds its series without hashing labels. Tested by apiserver/admission, through its chain.
package timing
