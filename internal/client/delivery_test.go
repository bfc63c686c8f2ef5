package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

func TestWhatAnAnswerProves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status  protocol.Status
		message string
		want    Delivery
	}{
		{protocol.StatusBusy, "", NotRun},
		{protocol.StatusProtocol, "", NotRun},
		{protocol.StatusIllegal, "", NotRun},
		{protocol.StatusTaskError, "divided by zero", Ran},
		{protocol.StatusTaskError, "time limit of 1s", MayHaveRun},
		{protocol.StatusExpired, "", NotRun},
		{protocol.StatusPackageTooLarge, "", NotRun},
		{protocol.StatusResponseTooLarge, "", Ran},
		{-77, "a status of a later version", MayHaveRun},
	} {
		t.Run(tt.status.Message()+" "+tt.message, func(t *testing.T) {
			require.Equal(t, tt.want, deliveryOf(tt.status, tt.message))
		})
	}
}

func TestWhatAFailureProves(t *testing.T) {
	t.Parallel()
	const id = 7
	endings := map[string]ending{"time-out": timedOut, "EOF": eof, "reset": reset, "broken": broken}
	for _, tt := range []struct {
		name string
		e    evidence
		want map[string]Delivery // by ending
	}{
		{"nothing written", evidence{sent: sentNothing}, all(NotRun)},
		{"written in part", evidence{sent: sentPart}, all(NotRun)},
		{"written in part, shared", evidence{sent: sentPart, shared: true}, all(NotRun)},
		{"whole, own connection", evidence{sent: sentWhole},
			map[string]Delivery{"time-out": MayHaveRun, "EOF": MayHaveRun, "reset": NotRun, "broken": MayHaveRun}},
		{"whole, shared connection", evidence{sent: sentWhole, shared: true}, all(MayHaveRun)},
		{"write under way, shared connection", evidence{sent: sentUnknown, shared: true}, all(MayHaveRun)},
		{"whole, last read before it", evidence{sent: sentWhole, shared: true, readKnown: true, lastRead: id - 1},
			map[string]Delivery{"time-out": MayHaveRun, "EOF": NotRun, "reset": NotRun, "broken": MayHaveRun}},
		{"whole, itself read", evidence{sent: sentWhole, shared: true, readKnown: true, lastRead: id}, all(MayHaveRun)},
		{"whole, itself read, own connection", evidence{sent: sentWhole, readKnown: true, lastRead: id}, all(MayHaveRun)},
		{"whole, nothing read", evidence{sent: sentWhole, readKnown: true, lastRead: 0},
			map[string]Delivery{"time-out": MayHaveRun, "EOF": NotRun, "reset": NotRun, "broken": MayHaveRun}},
	} {
		for name, end := range endings {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				e := tt.e
				e.id, e.end = id, end
				require.Equal(t, tt.want[name], e.delivery())
			})
		}
	}
}

func all(d Delivery) map[string]Delivery {
	return map[string]Delivery{"time-out": d, "EOF": d, "reset": d, "broken": d}
}
