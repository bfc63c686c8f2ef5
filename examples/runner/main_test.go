package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const story = `An order is paid
  order.paid.notify {"orderId":10001}, attempt 1: success
Suppliers are imported: each by one worker, 100 ms at most, 3 in 2 s
  supplier.import {"supplier_id":7}, attempt 1: skip ("overlap:import_supplier_7" is held)
  supplier.import {"supplier_id":7}, attempt 1: success
  supplier.import {"supplier_id":8}, attempt 1: retry (Job exceeded maximum execution time of 0.1 seconds.)
  supplier.import {"supplier_id":8}, attempt 2: success
  supplier.import {"supplier_id":9}, attempt 1: defer (Rate limit exceeded for 'supplier.import': max 3 executions per 2 seconds.)
  supplier.import {"supplier_id":9}, attempt 1: success
A report meets a full disk
  report.export {"month":"2026-06"}, attempt 1: retry (report 2026-06: no space left)
  report.export {"month":"2026-06"}, attempt 2: retry (report 2026-06: no space left)
  report.export {"month":"2026-06"}, attempt 3: retry (report 2026-06: no space left)
  dead: report.export, failed after 3 attempts: report 2026-06: no space left
  replayed: 1
  report.export {"month":"2026-06"}, attempt 1: success
`

func TestJobs(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	assert.Equal(t, story, out.String())
}
