// Package histograms makes the options of histograms that are shown in both forms of Prometheus.
//
// Whoever asks for protobuf has native buckets beside the classic ones, as of upstream's components since 1.37 (gate NativeHistograms):
// each at most a tenth wider than the one before, so that quantiles are exact for whatever was measured. Text has the classic ones only.
// Every part that measures durations or sizes calls it; it calls nothing of this project.
//
// It promises: a histogram has at most nativeBucketsMax native buckets, whatever is observed. Tested with a histogram of its own; its
// benchmark says what one observation costs.
package histograms
