// A text field that filters a table while the user types.
interface Props {
  value: string;
  placeholder: string; // "Filter: " followed by an example
  onInput: (text: string) => void;
}

export function SearchField({ value, placeholder, onInput }: Props) {
  return (
    <label class="search">
      <span class="visually-hidden">Filter by text</span>
      <input
        type="search"
        value={value}
        placeholder={placeholder}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
