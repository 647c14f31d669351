// Package numbers counts what the control loops of one server do: how much waits, what fails, what is slow, who writes in circles.
//
// It owns the Ledger, which has a Loop for each queue, the Report of each, and Scheduling for what only the scheduler counts. Package
// reconcile tells the Loop of every key that waits, is worked on, fails or succeeds; package server tells it of every write, serves the
// reports to `setpoint loops` and shows the counts in /metrics. Series are upstream's metrics of single controllers, kept by the library of
// Prometheus. It calls nothing of this project but internal/histograms.
//
// It promises: memory is bounded, by SlowestMax, FailingMax and ObjectsMax for each loop; counts never go back, not even with a new term;
// all methods may be called from any goroutine, and those of a nil Loop or Scheduling do nothing. Time is an argument, so that nothing
// here waits or ticks: an idle server pays nothing.
//
// Tests are tables over made-up times.
package numbers
