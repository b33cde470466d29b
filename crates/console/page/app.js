document.body.textContent = "Forebay";
