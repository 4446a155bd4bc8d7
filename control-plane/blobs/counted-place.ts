import { StorageError, type UsedPlace } from './place.ts'

export type PlaceAct = 'put' | 'open' | 'has' | 'remove'

/** The same place, which tells of each act that failed since the place cannot be reached, is full or refuses. */
export function countedPlace(place: UsedPlace, onFailed: (act: PlaceAct) => void): UsedPlace {
  const count = async <Result>(act: PlaceAct, doing: Promise<Result>): Promise<Result> => {
    try {
      return await doing
    } catch (error) {
      if (error instanceof StorageError) onFailed(act)
      throw error
    }
  }
  return {
    name: place.name,
    put: (blob, source) => count('put', place.put(blob, source)),
    open: (id, range, sizeBytes) => count('open', place.open(id, range, sizeBytes)),
    has: (id) => count('has', place.has(id)),
    remove: (blob) => count('remove', place.remove(blob)),
  }
}
