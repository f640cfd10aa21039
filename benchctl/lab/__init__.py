"""Virtual networks on one machine, removed without a trace.

Pure: `model` has the types of a lab. `topology` reads them from a file (`schema` has its keys), and
`segments`, `addressing` and `routing` compute what the file leaves open. `expect` computes
theoretical values, `link` models one direction of a link, and `strain` decides whether an emulator
was too busy for valid figures. `script` and `netem` write the input of ip and tc.

Not pure: the runner uses `lab`. It starts the `keeper`, a process that builds the lab (`namespaces`
of `devices`) and starts its `services` and links (`emulator` over `ring`s, or `kernel`); the lab
ends with it. `capability` checks what a machine allows. `verify` measures whether links keep their
promises, with a `probe` at either end, controlled by a `prober`. Pure again: `legs` chooses the
pairs of nodes, and `judgement` evaluates the measurements.
"""
