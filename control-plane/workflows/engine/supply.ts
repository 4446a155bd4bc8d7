import { createInstance, type Instance } from './instance.ts'

/** Fresh instances of one worker: the next one is made while nobody waits for it. */
export class InstanceSupply {
  private readonly wasm: WebAssembly.Module
  private next: Promise<Instance> | null = null

  constructor(wasm: WebAssembly.Module) {
    this.wasm = wasm
  }

  take(): Promise<Instance> {
    const taken = this.next ?? createInstance(this.wasm)
    this.next = null
    return taken
  }

  /** Does the work with a fresh instance, and makes the next one when its outcome is told. */
  async with<Outcome>(work: (instance: Instance) => Outcome): Promise<Outcome> {
    try {
      return work(await this.take())
    } finally {
      setImmediate(() => void (this.next ??= createInstance(this.wasm)))
    }
  }
}
