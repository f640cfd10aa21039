"""Virtual networks on one machine, gone without a trace.

Pure: `model` is what a lab is made of; `topology` reads it from a file (its shape is in `schema`),
with `segments`, `addressing` and `routing` working out what the file leaves open; `expect` is what
theory says of it; `link` is the model of one direction of a link; `strain` says when an emulator
was too busy for its figures; `script` and `netem` are what ip, tc and the C library are told.

The rest does: `lab` is what the runner uses. It starts the `keeper`, a process that builds the lab
(`namespaces` of `devices`), starts its `services` and links (`emulator` over `ring`s, or `kernel`),
and whose end is the lab's end. `capability` says what a machine allows, `verify` measures whether
links keep their promises, with a `probe` at either end that a `prober` gives orders to. Pure again:
`legs`, between whom that is done, and `judgement`, what follows from what was seen.
"""
