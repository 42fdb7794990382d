// Notes that harness/stats attaches to a ranking or comparison.

export function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes quiet">
      {notes.map((note) => (
        <li key={note}>
          <bdi>{note}</bdi>
        </li>
      ))}
    </ul>
  );
}
