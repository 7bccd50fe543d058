"""Programs that look for what tests alone would not find; `make test` runs a share of each (`tests/assurance`).

faults/      the campaign against real services, workers and databases: `make faults`
model/       every state of a model of the protocol: `make model`
traces/      what real processes do, held against the model: `make model`
mutants/     breaks of the core, and whether a test notices: `make mutants`
stalls/      how long each request holds up the others: `make stalls`
"""
