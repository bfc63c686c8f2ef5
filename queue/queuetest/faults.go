package queuetest

var faults = []behaviour{}
