/** Why a repository was not read. Its message may be shown to whoever named it. */
export class SourceError extends Error {
  override name = 'SourceError'
  /** `refused`: it is not asked. `unreadable`: it was asked. `no_folder`: it has not the folder. `busy`: too many wait. */
  readonly reason: 'refused' | 'unreadable' | 'no_folder' | 'busy'

  constructor(reason: SourceError['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
