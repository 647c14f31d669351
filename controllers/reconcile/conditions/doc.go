// Package conditions owns how control loops find and change status conditions.
//
// It calls nothing but the API types. Every kind has its own Go type of condition;
// a Kind tells where that keeps what all have in common. Kinds that one controller
// alone writes are made in its folder, with Of. Conditions of the type
// metav1.Condition have upstream's meta.SetStatusCondition.
//
// It promises: the time of the last transition moves with the status only; a list
// that is given in may be the cache's, and is not changed.
//
// All of it is pure, so it is tested with tables.
package conditions
